"""Where a prompt was cut: what a lever that edits prompts leaves on a version for one that replays their prefixes."""

from __future__ import annotations

from collections.abc import Collection

# Column of versions, where prompts are edited: `tail` or `head` on those of which the input changed, else NULL.
CUT = "trim_cut"


def blocks_left(held: Collection[str], version: str, blocks: str, block_tokens: str) -> tuple[str, str]:
    """Write which prefix blocks of the logged prompt an edited one still has.

    An edited prompt has the first floor(input / block) whole blocks' worth of text: cut at the tail, the first of the
    logged blocks; cut at the head, the last of them, none of which is then the block that it was (every block's hash
    covers all that is before it), so a block is told by (dropped, hash).

    Args:
        held: Columns of the versions; without the cut nothing was edited.
        version: Name of the versions in the query.
        blocks: SQL of the number of logged blocks.
        block_tokens: SQL of the tokens in a block.

    Returns:
        SQL of how many leading blocks are dropped, and of how many are kept behind them.
    """
    if CUT not in held:
        return "0", blocks
    # whole blocks; dividing gives a double on both engines, so only what divides evenly is divided
    whole = f"cast(({version}.input_tokens - {version}.input_tokens % {block_tokens}) / {block_tokens} as bigint)"
    kept = f"case when {version}.{CUT} is null then {blocks} else least({blocks}, {whole}) end"
    return f"case when {version}.{CUT} = 'head' then {blocks} - ({kept}) else 0 end", kept
