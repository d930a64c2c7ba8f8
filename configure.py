#!/usr/bin/env python3
import sys, os
os.makedirs("build", exist_ok=True)
open("build/config.ninja", "w").write("""python = python3
arguments = 
cc = gcc
ar = ar
openmp = -fopenmp
optimise = -O2 -g
checked = -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
werror =
png_flags =
png_libs = -lpng
prefix = /usr/local
""")
