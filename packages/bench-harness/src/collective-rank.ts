// The program of a rank of `roofline allreduce`. It lies at the top of src/ as its build does in dist/.
import type { StoreClientOptions } from '@roofline/collectives';
import { serveTurns } from './benchmarks/allreduce/ranks/serve-turns.ts';
import type { CollectiveBackend } from './benchmarks/allreduce/parameters.ts';

const [backend, place] = process.argv.slice(2);
await serveTurns(backend as CollectiveBackend, JSON.parse(place!) as StoreClientOptions);
