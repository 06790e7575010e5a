// The program of the thread that hosts a store. It lies at the top of src/ as its build does in dist/.
import { parentPort, workerData } from 'node:worker_threads';
import { StoreError } from './errors.ts';
import { StoreServer, type StoreServerOptions } from './store/store-server.ts';

// The server does not keep the thread alive; this does, until it is ended.
parentPort!.on('message', () => {});
try {
  await StoreServer.listen(workerData as StoreServerOptions);
  parentPort!.postMessage(null, []);
} catch (error) {
  if (!(error instanceof StoreError)) throw error;
  parentPort!.postMessage(error.message, []);
}
