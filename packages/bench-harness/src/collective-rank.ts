// The program of a rank of `roofline allreduce`. It is at the top of src/ as its build is in dist/.
import { serveTurns } from './benchmarks/allreduce/ranks/serve-turns.ts';
import type { CollectiveBackend } from './benchmarks/allreduce/parameters.ts';

const [backend, port] = process.argv.slice(2);
const token = process.env['ROOFLINE_STORE_TOKEN']!;
await serveTurns(backend as CollectiveBackend, { host: '127.0.0.1', port: Number(port), token });
