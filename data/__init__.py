"""The demo data of tenfold: one invented quarter of LLM requests, and the generator that wrote it.

`data/demo/` holds the committed logs; `data.generate.write_demo` writes them again, byte for byte.
Nothing is imported here, so that `python -m data.generate` runs one copy of each module.
"""
