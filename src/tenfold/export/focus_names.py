"""The words of a FOCUS export: who sells, and for each meter its SKU, unit and price unit."""

from __future__ import annotations

from typing import NamedTuple


class Seller(NamedTuple):
    """How a provider is written.

    Args:
        name: ProviderName, or ServiceProviderName, and who bills.
        service: ServiceName.
        developer: Who made the models that it sells; empty where others' are sold too.
    """

    name: str
    service: str
    developer: str = ""


SELLERS: dict[str, Seller] = {
    "openai": Seller("OpenAI", "OpenAI API", "OpenAI"),
    "anthropic": Seller("Anthropic", "Anthropic API", "Anthropic"),
    "google": Seller("Google", "Gemini API", "Google"),
    "vertex": Seller("Google Cloud", "Vertex AI"),
    "azure": Seller("Microsoft", "Azure OpenAI Service"),
    "bedrock": Seller("Amazon Web Services", "Amazon Bedrock"),
    "xai": Seller("xAI", "xAI API", "xAI"),
    "deepseek": Seller("DeepSeek", "DeepSeek API", "DeepSeek"),
    "mistral": Seller("Mistral AI", "Mistral API", "Mistral AI"),
    "groq": Seller("Groq", "GroqCloud"),
    "cohere": Seller("Cohere", "Cohere API", "Cohere"),
    "together": Seller("Together AI", "Together API"),
    "fireworks": Seller("Fireworks AI", "Fireworks API"),
    "openrouter": Seller("OpenRouter", "OpenRouter API"),
    "moonshot": Seller("Moonshot AI", "Moonshot API", "Moonshot AI"),
    "qwen": Seller("Alibaba Cloud", "Model Studio", "Qwen"),
    "zai": Seller("Z.ai", "Z.ai API", "Z.ai"),
    "self-hosted": Seller("Self-hosted", "Self-hosted inference"),
}


class Sku(NamedTuple):
    """How a meter is written.

    Args:
        suffix: What SkuId adds to the model.
        meter: SkuMeter.
        unit: ConsumedUnit.
        pricing_unit: PricingUnit: what the prices of a price file are for.
        unit_divisor: Units of the meter in one ConsumedUnit.
        direction: Of tokens, Input or Output.
        cache: What happened to input at the cache.
    """

    suffix: str
    meter: str
    unit: str = "Tokens"
    pricing_unit: str = "1000000 Tokens"
    unit_divisor: int = 1
    direction: str = ""
    cache: str = ""


_BY_CALL = ("Requests", "1000 Requests")
SKUS: dict[str, Sku] = {
    "uncached_input": Sku("input", "Input Tokens", direction="Input", cache="Uncached"),
    "cache_read": Sku("cache-read", "Cache Read Input Tokens", direction="Input", cache="Read"),
    "cache_write": Sku("cache-write", "Cache Write Input Tokens", direction="Input", cache="Write"),
    "cache_write_long": Sku("cache-write-long", "Long Cache Write Input Tokens", direction="Input", cache="Write"),
    "input_audio": Sku("input-audio", "Audio Input Tokens", direction="Input", cache="Uncached"),
    "input_image": Sku("input-image", "Image Input Tokens", direction="Input", cache="Uncached"),
    "input_video": Sku("input-video", "Video Input Tokens", direction="Input", cache="Uncached"),
    "cache_read_audio": Sku("cache-read-audio", "Cache Read Audio Input Tokens", direction="Input", cache="Read"),
    "cache_read_image": Sku("cache-read-image", "Cache Read Image Input Tokens", direction="Input", cache="Read"),
    "cache_read_video": Sku("cache-read-video", "Cache Read Video Input Tokens", direction="Input", cache="Read"),
    "output": Sku("output", "Output Tokens", direction="Output"),
    "reasoning": Sku("output-reasoning", "Reasoning Output Tokens", direction="Output"),
    "output_audio": Sku("output-audio", "Audio Output Tokens", direction="Output"),
    "output_image": Sku("output-image", "Image Output Tokens", direction="Output"),
    "output_video": Sku("output-video", "Video Output Tokens", direction="Output"),
    "web_search": Sku("web-search", "Web Search Requests", *_BY_CALL),
    "web_search_preview": Sku("web-search-preview", "Web Search Preview Requests", *_BY_CALL),
    "file_search": Sku("file-search", "File Search Requests", *_BY_CALL),
    "maps_search": Sku("maps-search", "Maps Search Requests", *_BY_CALL),
    "code_session": Sku("code-session", "Code Interpreter Sessions", "Sessions", "Sessions"),
    "request": Sku("request", "Model Requests", *_BY_CALL),
    "image": Sku("image", "Generated Images", "Images", "Images"),
    "page": Sku("page", "Document Pages", "Pages", "1000 Pages"),
    "character": Sku("character", "Input Characters", "Characters", "1000000 Characters"),
    "audio_time": Sku("audio-time", "Audio Input Time", "Seconds", "Hours", 1_000),
    "output_time": Sku("output-time", "Media Output Time", "Seconds", "Hours", 1_000),
    "cache_storage": Sku("cache-storage", "Context Cache Storage", "Token-Seconds", "1000000 Token-Hours"),
}


def seller(provider: str) -> Seller:
    """Find how a provider is written.

    Args:
        provider: In tenfold's spelling; a project's own too.

    Returns:
        Its names; the provider's own word where it is not known.
    """
    return SELLERS.get(provider) or Seller(provider, f"{provider} API")
