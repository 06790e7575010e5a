import { openGpu } from '@roofline/cuda';

const gpu = openGpu();
const add = gpu.kernel({ source: new URL('add.cu', import.meta.url), name: 'add', parameters: 'pppi' });

const n = 100_000;
using a = gpu.upload(Float32Array.from({ length: n }, (_, i) => i));
using b = gpu.upload(new Float32Array(n).fill(0.5));
using sum = gpu.allocateMemory(4 * n);

add.launch([Math.ceil(n / 256), 1, 1], 256, 0, [a.address, b.address, sum.address, n]);
console.log(sum.read(new Float32Array(n)).subarray(0, 4));
