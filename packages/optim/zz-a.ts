import { add, tensor, sum, mul, scope, device, zeros, ones, compile, noGrad, keep, full, fromTypedArray, sub } from '@roofline/tensor-core';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { AdamW, SGD, clipGradientNorm, GradientScaler } from './src/index.ts';
const emu = openEmulatedDevice();
for (const dev of [device('cpu'), emu]) {
  console.log('---', dev.label);
  // 1 shared gradients
  const a = tensor([1, 2]).to(dev).requiresGrad_(), b = tensor([3, 4]).to(dev).requiresGrad_();
  const g = tensor([3, 4]).to(dev);
  add(a, b).backward(g);
  console.log('shared storage', a.grad!.storage === b.grad!.storage, a.grad!.storage === g.storage);
  clipGradientNorm([a, b], 1);
  console.log('clipped', a.grad!.toFlatArray(), b.grad!.toFlatArray(), 'g', g.toFlatArray(), 'expect', 3 / Math.sqrt(50));
  for (const x of [a,b]) x.grad=null;
  // scaler
  add(a, b).backward(g);
  const sc = new GradientScaler({ initialScale: 4 });
  sc.scale(sum(a));
  const opt = new SGD([a, b], { learningRate: 1 });
  sc.unscale(opt);
  console.log('unscaled', a.grad!.toFlatArray(), b.grad!.toFlatArray());
  // clip with nan/inf/zero
  for (const vals of [[NaN, 1], [Infinity, 1], [-Infinity, 2], [0, 0], [1e-30, 1e-30], [1e20, 1e20], [3e38, 3e38], [1e-46, 0]]) {
    a.grad = tensor(vals).to(dev); b.grad = null;
    const n = clipGradientNorm([a, b], 1);
    console.log(vals, 'norm', n.item(), a.grad!.toFlatArray());
  }
  try { clipGradientNorm([], 1); } catch (e) { console.log(String(e)); }
  // empty params
  const e = zeros([0, 3]).to(dev).requiresGrad_();
  e.grad = zeros([0, 3]).to(dev);
  console.log('empty norm', clipGradientNorm([e], 1).item());
  const o = new AdamW([e]); o.step(); console.log(o.stateDict().metadata);
  const s1 = new SGD([e], { momentum: 0.9 }); s1.step();
  const sc2 = new GradientScaler(); sc2.scale(sum(e)); sc2.step(o); console.log('skipped', sc2.hasSkipped(o)); sc2.update();
  // hyper edits
  const p = tensor([1, 2]).to(dev).requiresGrad_(); p.grad = tensor([1, 1]).to(dev);
  const oo = new AdamW([p]);
  (oo.groups[0] as any).learningRate = NaN;
  try { oo.step(); console.log('NaN lr', p.toFlatArray()); } catch (e) { console.log(String(e)); }
}
