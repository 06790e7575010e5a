import { z } from 'zod';
import { StepPeer } from './step-peer.ts';

/** Versions of JAX and Python, the device as JAX names it, and which of its attentions it took. */
export const jaxReadyReply = z.object({
  jax: z.string(),
  python: z.string(),
  device: z.string(),
  attention: z.enum(['cudnn', 'xla']),
});
export type JaxDescription = z.infer<typeof jaxReadyReply>;

/** The same work in JAX, by python/jax_e2e.py. */
export class JaxPeer extends StepPeer<JaxDescription> {
  protected override readonly readyReply = jaxReadyReply;

  constructor(python: string, threads: number) {
    super('jax_e2e.py', python, threads, 'JAX');
  }
}
