"""Analyses: each reads the ledger, none reads another."""
