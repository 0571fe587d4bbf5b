"""The store: tables, the DuckDB file, SQL steps and the engines that run them."""
