"""Sections of the review, one module each: ``section(facts)`` gives it, or says why it is left out."""
