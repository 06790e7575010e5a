import { full } from '@roofline/tensor-core';
import { initProcessGroup } from '@roofline/collectives';

// The smallest program of ranks: prints the sum of 1, 2... on each.
const group = await initProcessGroup({ backend: 'gloo' });
const x = full([4], group.rank + 1);
group.allReduce(x).wait();
console.log(`sum ${x.toFlatArray().join(' ')} on ${group.rank} of ${group.size}`);
