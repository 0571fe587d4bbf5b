"""A price file that corrects one shipped price and adds a model, for what re-prices history."""

CORRECTED = """
provider = "openai"
[[price]]
model = "gpt-5"
valid_from = 2026-08-03
input = 1
output = 10
source = "the vendor's correction"
checked = 2026-11-29
[[price]]
model = "gpt-new"
input = 2
output = 4
source = "vendor"
checked = 2026-11-29
"""
