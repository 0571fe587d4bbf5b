"""The words that providers, standards and other tools use, and the ones tenfold stores them under."""

from __future__ import annotations

# Who bills. Right side: DESIGN's list. Left side: names seen in OpenTelemetry GenAI (gen_ai.provider.name,
# 2026-11), genai-prices 0.2.3 provider ids and litellm 1.110.2 (litellm_provider, custom_llm_provider).
PROVIDERS = (
    "openai",
    "anthropic",
    "google",
    "vertex",
    "azure",
    "bedrock",
    "xai",
    "deepseek",
    "mistral",
    "groq",
    "cohere",
    "together",
    "fireworks",
    "openrouter",
    "moonshot",
    "qwen",
    "zai",
    "self-hosted",
)
PROVIDER_ALIASES = {
    **{name: name for name in PROVIDERS},
    "text-completion-openai": "openai",
    "gemini": "google",
    "gcp.gemini": "google",
    "gcp.gen_ai": "google",
    "google_genai": "google",
    "google-gla": "google",
    "vertex_ai": "vertex",
    "vertex_ai_beta": "vertex",
    "gcp.vertex_ai": "vertex",
    "google-vertex": "vertex",
    "azure_ai": "azure",
    "azure_openai": "azure",
    "azure.ai.openai": "azure",
    "azure.ai.inference": "azure",
    "az.ai.openai": "azure",
    "az.ai.inference": "azure",
    "aws": "bedrock",
    "aws.bedrock": "bedrock",
    "bedrock_converse": "bedrock",
    "x-ai": "xai",
    "x_ai": "xai",
    "mistral_ai": "mistral",
    "mistralai": "mistral",
    "cohere_chat": "cohere",
    "together_ai": "together",
    "fireworks_ai": "fireworks",
    "moonshotai": "moonshot",
    "moonshot_ai": "moonshot",
    "dashscope": "qwen",
    "alibaba": "qwen",
    "z-ai": "zai",
    "z_ai": "zai",
    "zhipuai": "zai",
    "hosted_vllm": "self-hosted",
    "vllm": "self-hosted",
    "sglang": "self-hosted",
    "self_hosted": "self-hosted",
}
# Providers' words for the standard tier, as answered (OpenAI service_tier, Bedrock and Vertex traffic types).
TIER_WORDS = {
    "default": "standard",
    "auto": "standard",
    "on_demand": "standard",
    "on-demand": "standard",
    "on_demand_priority": "priority",
    "on_demand_flex": "flex",
}


# Bedrock cross-region inference profiles, which stand before the model id (AWS Bedrock user guide, "Supported Regions
# and models for inference profiles", 2026-11).
PROFILES = ("global", "us", "us-gov", "eu", "apac", "jp", "au", "ca", "sa", "mx", "af", "me", "in")


def profile_of(provider: str, model: str) -> tuple[str, str]:
    """Split a Bedrock model id into its inference profile and the model.

    Args:
        provider: Who bills, in tenfold's spelling.
        model: Model id in lower case; an ARN ends in one.

    Returns:
        Profile and bare id; an empty profile where the id has none or another provider bills.
    """
    if provider != "bedrock":
        return "", model
    bare = model.rsplit("/", 1)[-1] if model.startswith("arn:") else model.removeprefix("bedrock/")
    profile, dot, rest = bare.partition(".")
    return (profile, rest) if dot and profile in PROFILES else ("", bare)


def arn_region(model: str) -> str:
    """Read the region that an ARN names.

    Args:
        model: A model id.

    Returns:
        The region; empty where the id is no ARN, or names none.
    """
    parts = model.lower().split(":")
    return parts[3] if parts[0] == "arn" and len(parts) > 3 else ""


def canonical_provider(name: str | None) -> str:
    """Name a provider the way tenfold stores it.

    Args:
        name: Any of the known spellings, in any case.

    Returns:
        tenfold's spelling; an unknown name in lower case; empty where there is none.
    """
    word = (name or "").strip().lower()
    return PROVIDER_ALIASES.get(word, word)


def canonical_tier(word: str | None) -> str:
    """Name a service tier the way tenfold stores it.

    Args:
        word: The tier as the provider answered it, in any case.

    Returns:
        ``standard`` where the log says nothing or the provider's word for it; else the word in lower case.
    """
    tier = (word or "").strip().lower()
    return TIER_WORDS.get(tier, tier) or "standard"
