"""Text files, line by line, and files that are written completely or not at all.

    text_lines.py    lines and cells, with errors that name the place; NFC and NFD; numbers of read entries
    packed.py        files packed by gzip, read like plain ones
    text_blocks.py   large texts in blocks, processed by several processes
    processes.py     a function over many inputs in several processes
    reading.py       errors of files that cannot be read; devices and pipes are detected before they are opened;
                     a pipe can be opened again with the same content
    toml.py          TOML of users, within limits of time and memory
    binary_text.py   texts of fairseq-preprocess
    array_file.py    arrays of numbers, mapped from disk
    numbers.py       limits of numbers in files and options
    atomic_write.py  writes under a temporary name, which is then renamed or exchanged
"""
