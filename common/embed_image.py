#!/usr/bin/env python3
"""Writes a file's bytes as C: embed_image.py gates.fatbin gki_gates_fatbin > gates_fatbin.c

The array has the alignment of an image and a zero byte at its end. NAME_bytes is its size without that byte."""
import re
import sys


def main():
    if len(sys.argv) != 3 or not re.fullmatch(r'[A-Za-z_]\w*', sys.argv[2], re.ASCII):
        sys.exit('use: embed_image.py FILE NAME')
    path, name = sys.argv[1:]
    with open(path, 'rb') as file:
        data = file.read()
    print(f'#include <stddef.h>\nextern const unsigned char {name}[];\nextern const size_t {name}_bytes;')
    print(f'const size_t {name}_bytes = {len(data)};')
    print(f'const unsigned char {name}[] __attribute__((aligned(64))) = {{')
    for at in range(0, len(data), 32):
        print('  ' + ','.join(map(str, data[at:at + 32])) + ',')
    print('  0};')


if __name__ == '__main__':
    main()
