#!/usr/bin/env python3
"""Writes a file's text as C: embed_text.py cloth.c cloth > cloth_text.c

For kernels whose compiler can't embed their file by itself (see GK_SOURCE in gk_kernel.h): compile them with
-DGK_TEXT_GENERATED and link what this prints. The second argument is the name given to GK_SOURCE or GK_SHARED.

--bare leaves out comments and indentation; with a directive, "#ifndef NAME" or the like, also what stands between such
a line and its #else or #endif. All lines keep their numbers."""
import argparse
import re
import sys


def without_comments(text):
    """The text without comments and indentation: C, CUDA or PTX. No comment in a directive may span lines."""
    parts = rb'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/'
    bare = re.sub(parts, lambda part: b' ' + b'\n' * part[0].count(b'\n') if part[0][:1] == b'/' else part[0], text,
                  flags=re.S)
    return re.sub(rb'^[ \t]+|[ \t]+$', b'', bare, flags=re.M)


def without_branch(text, directive):
    """A text without comments, without the lines between each such directive and its #else or #endif."""
    kept, depth = [], 0
    for line in text.splitlines(keepends=True):
        word = re.match(rb'#\s*(if|el|end)|', line)[1]
        if depth:
            depth += (word == b'if') - (word == b'end' or word == b'el' and depth == 1)
            kept.append(b'\n' if depth else line)
        else:
            depth = int(line.rstrip() == directive)
            kept.append(line)
    if text.splitlines().count(directive) == 0 or depth:
        sys.exit(f'there is no {directive.decode()} with its #else or #endif')
    return b''.join(kept)


def bare(text, directive=None):
    text = without_comments(text)
    return without_branch(text, directive) if directive else text


def literal(line):
    """One line of the file as a C string literal: ASCII only, no trigraphs."""
    plain = {'"': '\\"', '\\': '\\\\', '?': '\\?', '\n': '\\n', '\t': '\\t'}
    return '"' + ''.join(plain.get(chr(b)) or (chr(b) if 32 <= b < 127 else f'\\{b:03o}') for b in line) + '"'


def main():
    usage = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usage.add_argument('file')
    usage.add_argument('name')
    usage.add_argument('--bare', nargs='?', const='', metavar='DIRECTIVE')
    given = usage.parse_args()
    if not re.fullmatch(r'[A-Za-z_]\w*', given.name, re.ASCII):
        usage.error(f'{given.name} is no name in C')
    with open(given.file, 'rb') as file:
        text = file.read()
    if 0 in text:
        sys.exit(f'{given.file}: no text: byte {text.index(0)} is zero')
    if given.bare is not None:
        text = bare(text, given.bare.encode())
    print('#if defined(__GNUC__)\n#pragma GCC diagnostic ignored "-Woverlength-strings"\n#endif')
    print(f'extern const char gki_text_{given.name}[];\nconst char gki_text_{given.name}[] =')
    for line in text.splitlines(keepends=True) or [b'']:
        print('  ' + literal(line))
    print(';')


if __name__ == '__main__':
    main()
