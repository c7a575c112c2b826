"""Text files, line by line, and files that are written as a whole or not at all.

    text_lines.py    lines and cells, with errors that name the place; NFC and NFD; how many entries were read
    packed.py        files packed by gzip, bzip2 or xz, read as if they were plain
    text_blocks.py   large texts in blocks, worked on by several processes
    processes.py     a function over many inputs in several processes
    reading.py       what is said where a file cannot be read; devices and pipes are known before they are opened;
                     a pipe that is opened again gives its content again
    toml.py          TOML of users, within bounds of time and memory
    binary_text.py   texts of fairseq-preprocess
    array_file.py    arrays of numbers, mapped from disk
    numbers.py       how large a number in a file may be
    atomic_write.py  written under a temporary name that ends with its process, then renamed or exchanged
"""
