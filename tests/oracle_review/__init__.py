"""A second review: every figure again from rows, slowly, by the definitions as they are printed.

Nothing of tenfold's analyses, exports or reviews is used; prices are those of ``oracle.py``.
"""
