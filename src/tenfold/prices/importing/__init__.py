"""What other price tables say: read from the installed packages, compared with a book, proposed as a diff."""
