#!/usr/bin/env python3
"""Writes a file's text as C: embed_text.py cloth.c cloth > cloth_text.c

For kernels whose compiler can't embed their file by itself (see GK_SOURCE in gk_kernel.h): compile them with
-DGK_TEXT_GENERATED and link what this prints. The second argument is the name given to GK_SOURCE or GK_SHARED."""
import re
import sys


def literal(line):
    """One line of the file as a C string literal: ASCII only, no trigraphs."""
    plain = {'"': '\\"', '\\': '\\\\', '?': '\\?', '\n': '\\n', '\t': '\\t'}
    return '"' + ''.join(plain.get(chr(b)) or (chr(b) if 32 <= b < 127 else f'\\{b:03o}') for b in line) + '"'


def main():
    if len(sys.argv) != 3 or not re.fullmatch(r'[A-Za-z_]\w*', sys.argv[2], re.ASCII):
        sys.exit('use: embed_text.py FILE NAME')
    path, name = sys.argv[1:]
    with open(path, 'rb') as file:
        text = file.read()
    if 0 in text:
        sys.exit(f'{path}: no text: byte {text.index(0)} is zero')
    print('#if defined(__GNUC__)\n#pragma GCC diagnostic ignored "-Woverlength-strings"\n#endif')
    print(f'extern const char gki_text_{name}[];\nconst char gki_text_{name}[] =')
    for line in text.splitlines(keepends=True) or [b'']:
        print('  ' + literal(line))
    print(';')


if __name__ == '__main__':
    main()
