#!/bin/bash
# Builds and runs the comparison of the split-half product before (old/) and after (new/). Output: stdout.
cd "$(dirname "$0")" || exit 1
python3 generate.py || exit 1
nvcc -std=c++17 -O2 -w -gencode=arch=compute_90a,code=sm_90a -o bench bench.cu -ldl || exit 1
if [ -z "$CUBLAS" ]; then
  CUBLAS=$(ls /usr/local/cuda*/lib64/libcublas.so.1? /usr/local/cuda*/targets/x86_64-linux/lib/libcublas.so.1? 2>/dev/null | head -1)
  [ -z "$CUBLAS" ] && CUBLAS=$(python3 -c "import glob,site;print(next(iter(sum((glob.glob(p+'/nvidia/**/libcublas.so.1?',recursive=True) for p in site.getsitepackages()),[])),''))")
  export CUBLAS
  # libcublas loads libcublasLt from beside it
  export LD_LIBRARY_PATH="$(dirname "$CUBLAS"):$LD_LIBRARY_PATH"
fi
echo "cuBLAS: $CUBLAS"
[ "$1" = build ] && exit 0
timeout -k 5 60 ./bench check
timeout -k 5 60 ./bench time
timeout -k 5 60 ./bench marked
