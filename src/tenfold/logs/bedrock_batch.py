"""AWS Bedrock batch inference output (``*.jsonl.out``): one record a line, the model's own answer in ``modelOutput``.

No line says which model was called (Anthropic's answers alone name it), when, or where: the job does. So the load says
it, with ``--set model=...`` and ``--set region=...``; the tier is the file's.
"""

from __future__ import annotations

from tenfold.logs import sql
from tenfold.logs.base import Detect, Reader, Text, usage_leaves, usage_sql
from tenfold.logs.bedrock import SHAPE

_ANSWER = 'r."modelOutput"'
_USAGE = f"{_ANSWER}.usage"
_FAILED = "r.error IS NOT NULL"
_CODE = sql.text('r.error."errorCode"')


def _count(name: str, *own: str) -> str:
    """Take a count from the usage object, else from the keys of Llama's and Titan's answers."""
    said = [f'{_ANSWER}."{key}"::VARCHAR' for key in own]
    return f"coalesce({', '.join([usage_sql(SHAPE, _USAGE, SHAPE.counts[name]), *said])})"


_TITAN = f"CASE WHEN len({_ANSWER}.results) > 0 THEN {sql.sum_of(f'{_ANSWER}.results', 'tokenCount', none='NULL')} END"

BEDROCK_BATCH = Reader(
    name="bedrock_batch",
    kinds=("ndjson",),
    one_request="id of an Anthropic answer; other answers have none",
    unsaid=("--set model=NAME", "--set region=NAME"),
    shape=SHAPE,
    usage=_USAGE,
    leaves={
        "recordId": "VARCHAR",
        "error.errorCode": "JSON",
        "error.errorMessage": "VARCHAR",
        "modelOutput.id": "VARCHAR",
        "modelOutput.model": "VARCHAR",
        "modelOutput.stop_reason": "VARCHAR",
        "modelOutput.stopReason": "VARCHAR",
        "modelOutput.prompt_token_count": "JSON",
        "modelOutput.generation_token_count": "JSON",
        "modelOutput.inputTextTokenCount": "JSON",
        "modelOutput.results[].tokenCount": "JSON",
        "modelOutput.results[].completionReason": "VARCHAR",
        **usage_leaves(SHAPE, "modelOutput.usage."),
    },
    fields={
        "request_id": sql.first(f"{_ANSWER}.id", 'r."recordId"'),
        "custom_id": 'r."recordId"',
        "provider": "'bedrock'",
        "model": f"{_ANSWER}.model",
        "service_tier": "'batch'",
        "operation": "'batch'",
        "is_stream": "false",
        "status": f"CASE WHEN {_FAILED} THEN 'error' ELSE 'success' END",
        "finish_reason": sql.words(
            sql.first(f"{_ANSWER}.stop_reason", f'{_ANSWER}."stopReason"', f'{_ANSWER}.results[1]."completionReason"'),
            {"finish": "stop", "finished": "stop"},
        ),
        "http_status": _CODE,
        "is_billable": f"NOT {_FAILED} OR {_USAGE} IS NOT NULL",
    },
    ts="NULL",
    # A record's id may be used again in the next job: only the answer's own tells calls apart.
    dedup_key=f"'bedrock|' || {sql.key_part(sql.named(f'{_ANSWER}.id'))}",
    counts={
        "input_tokens": _count("input_tokens", "prompt_token_count", "inputTextTokenCount"),
        "output_tokens": f"coalesce({_count('output_tokens', 'generation_token_count')}, {_TITAN})",
    },
    detect=Detect(keys=(("recordId", "modelOutput"), ("recordId", "error"))),
    text=Text(
        leaves={
            "modelInput": "JSON",
            "modelOutput.content": "JSON",
            "modelOutput.generation": "JSON",
            "modelOutput.results[].outputText": "JSON",
        },
        prompt='r."modelInput"',
        params='r."modelInput"',
        response=f'coalesce({_ANSWER}.content, {_ANSWER}.generation, {_ANSWER}.results[1]."outputText")',
    ),
)
