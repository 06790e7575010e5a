"""Writes variants.cuh: every kernel variant that the benchmark launches, each in a namespace of its own."""
import os
import re

here = os.path.dirname(os.path.abspath(__file__))
tiles = [(128, 128, 3), (128, 64, 4), (64, 128, 4), (64, 64, 6)]
out = []


def add(folder, file, name, defines):
    source = open(os.path.join(here, folder, file)).read()
    headers = {}

    def inline(text):
        def put(match):
            return inline(open(os.path.join(here, folder, match.group(1))).read())

        return re.sub(r'^#include "([^"]+)"$', put, text, flags=re.M)

    text = inline(source).replace('extern "C" ', '')
    macros = set(re.findall(r'^\s*#define (\w+)', text, flags=re.M)) | set(defines)
    out.extend(f'#define {key} {value}' for key, value in defines.items())
    out.extend([f'namespace {name} {{', text, '}'])
    out.extend(f'#undef {macro}' for macro in sorted(macros))


table = []
for folder in ('old', 'new'):
    add(folder, 'split_half.cu', f'{folder}_split', {})
    for t, (m, n, stages) in enumerate(tiles):
        for ta, tb in ((0, 0), (0, 1), (1, 0)):
            name = f'{folder}_{m}_{n}_{ta}{tb}'
            add(folder, 'matmul_split_half.cu', name,
                dict(BLOCK_M=m, BLOCK_N=n, STAGES=stages, TRANS_A=ta, TRANS_B=tb))
            table.append(f'  if (isNew == {int(folder == "new")} && tile == {t} && ta == {ta} && tb == {tb}) '
                         f'return reinterpret_cast<const void*>({name}::matmul_split_half);')
out.append('inline const void* product_kernel(int isNew, int tile, int ta, int tb) {')
out.extend(table)
out.append('  return nullptr;\n}')
open(os.path.join(here, 'variants.cuh'), 'w').write('\n'.join(out) + '\n')
