"""The seven steps of the runbook, one module each; none knows another."""
