"""Replays that levers share: what a cache would have answered, request by request. None imports another."""
