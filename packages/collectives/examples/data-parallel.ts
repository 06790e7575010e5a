// Trains a small model to know one text by heart, on as many ranks as are started:
//
//   node --conditions=roofline-source src/cli.ts --nproc 2 -- examples/data-parallel.ts [steps]
//   torchrun --nproc_per_node 2 --no_python node --conditions=roofline-source examples/data-parallel.ts
//   mpirun -np 2 node --conditions=roofline-source examples/data-parallel.ts
//   srun --ntasks 2 node --conditions=roofline-source examples/data-parallel.ts
//
// However it is started, the loss is the same to the last bit.
import { createHash } from 'node:crypto';
import { type Tensor, mul, noGrad, scope, setCpuThreads } from '@roofline/tensor-core';
import { AdamW, clipGradientNorm } from '@roofline/optim';
import { TransformerLM, byteWindows, languageModelLoss, overfitExample } from '@roofline/transformer';
import { DistributedDataParallel, ShardedOptimizer, initProcessGroup } from '@roofline/collectives';

const steps = Number(process.argv[2] ?? 50);
const { text, config, batch } = overfitExample;

// Launchers differ in how many cores they let a rank have; sums depend on how they are cut into pieces.
setCpuThreads(1);
const group = await initProcessGroup({ backend: 'gloo' });
const model = new TransformerLM(config, { seed: group.rank });
const parallel = new DistributedDataParallel(model, group);
const optimizer = new ShardedOptimizer(model.parameters(), AdamW, group, { learningRate: 3e-3 });

function trainStep(step: number): number {
  parallel.step = step;
  return scope(() => {
    // This rank's rows of the joined batch.
    const part = { step: step * group.size + group.rank, batch, contextLength: config.contextLength };
    const { ids, targets } = byteWindows(text, part);
    const loss = languageModelLoss(model, ids, targets);
    loss.backward();
    clipGradientNorm(model.parameters(), 1);
    optimizer.step();
    optimizer.zeroGrad();
    return meanOverRanks(loss);
  });
}

function meanOverRanks(loss: Tensor): number {
  return noGrad(() => {
    const mean = mul(loss, 1);
    group.allReduce(mean, { op: 'average' }).wait();
    return mean.item();
  });
}

for (let step = 0; step < steps; step++) {
  const loss = trainStep(step);
  if (group.rank === 0 && (step % 10 === 0 || step === steps - 1)) console.log(`step ${step}: loss ${loss}`);
}
const digest = createHash('sha256');
for (const parameter of model.parameters()) digest.update(new Uint8Array(parameter.toTypedArray().buffer));
console.log(`rank ${group.rank} of ${group.size}: parameters ${digest.digest('hex').slice(0, 16)}`);
parallel.dispose();
optimizer.dispose();
group.dispose();
