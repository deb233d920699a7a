/** Signals of the operating system, in Node. */

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

interface Process {
  on?: (signal: string, listener: () => void) => void;
  off?: (signal: string, listener: () => void) => void;
}

/** Call `stop` on SIGTERM and SIGINT until the returned function is called. Browsers have no signals. */
export function onSignals(stop: () => void): () => void {
  const { process } = globalThis as { process?: Process };
  for (const signal of SIGNALS) process?.on?.(signal, stop);
  return () => {
    for (const signal of SIGNALS) process?.off?.(signal, stop);
  };
}
