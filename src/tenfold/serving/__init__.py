"""Self-hosted serving: what a token costs on one's own GPUs, what lowers it, and what the service levels allow."""
