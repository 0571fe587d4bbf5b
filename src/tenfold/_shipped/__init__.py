"""What tenfold ships beside its code: price files, demo logs and OpenAI's two rank files.

The first two are links here in a checkout, and folders in a wheel; ``tokens/`` lies here (MIT, notice beside it).
"""
