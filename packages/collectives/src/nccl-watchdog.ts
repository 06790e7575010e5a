// The program of the thread that watches NCCL's communicators. It lies at the top of src/ as its build does in dist/.
import { parentPort } from 'node:worker_threads';
import { CommunicatorWatch } from './nccl/watchdog/communicator-watch.ts';
import type { WatchMessage } from './nccl/watchdog/messages.ts';

parentPort!.on('message', ({ order, port }: WatchMessage) => void new CommunicatorWatch(order, port).run());
