// Loaded first, lets programs as they are run on an emulated GPU.
import { registerHooks } from 'node:module';

const { href } = new URL('cuda.mjs', import.meta.url);

registerHooks({
  resolve: (specifier, context, resolve) =>
    specifier === '@roofline/cuda' && context.parentURL !== href
      ? { url: href, shortCircuit: true }
      : resolve(specifier, context),
});
