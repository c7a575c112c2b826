"""Text files, line by line, and files that are written as a whole or not at all.

    text_lines.py    plain or gzip, with errors that name the place
    atomic_write.py  written under a temporary name, then renamed
"""
