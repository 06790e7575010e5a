import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** What nothing refers to is gone afterwards. */
export const collectGarbage = runInNewContext('gc') as () => void;
