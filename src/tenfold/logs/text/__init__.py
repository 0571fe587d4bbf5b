"""Text in logs: counted where the source gives no usage, hashed for the caching levers, then dropped.

``columns`` turns the text of a staged file into hashes and counts, ``fields`` says what the projection reads of them.
"""
