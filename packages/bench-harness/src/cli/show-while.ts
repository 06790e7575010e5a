/** The result of `work`; meanwhile `text` says what is waited for. */
export async function showWhile<T>(text: string, work: () => Promise<T>): Promise<T> {
  // Flags are read, and help is printed, without it.
  const { ProgressDisplay } = await import('./progress.ts');
  using progress = new ProgressDisplay();
  progress.status(text);
  return await work();
}
