// Draws each chart once more with tooltips. The SVG beside it stays: for print, for screen readers, without scripts.
const scheme = window.matchMedia("(prefers-color-scheme: dark)");
async function draw(figure) {
  const style = getComputedStyle(document.documentElement);
  const live = figure.querySelector(".live");
  const spec = figure.querySelector("script").textContent
    .replaceAll("#767676", style.getPropertyValue("--soft").trim())
    .replaceAll("#fefefd", style.getPropertyValue("--paper").trim());
  // ast: expressions are interpreted, not compiled, so that the page needs no eval
  const theme = scheme.matches ? "dark" : "light";
  // logLevel 1: errors alone
  const options = { actions: false, renderer: "svg", ast: true, tooltip: { theme }, logLevel: 1 };
  await vegaEmbed(live, JSON.parse(spec), options);
  figure.classList.add("is-live");
}
function drawAll() {
  document.querySelectorAll("figure.with-live").forEach(
    (figure) => draw(figure).catch((error) => console.error(`${figure.id}: ${error.message}`)));
}
scheme.addEventListener("change", drawAll);
drawAll();
