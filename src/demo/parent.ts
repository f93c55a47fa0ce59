// Ends the demo when npm is gone. npm, and the shell by which it starts a script, may end without telling
// whom they started, and nobody else would stop the demo then.

const lookEveryMs = 500;

/**
 * Aborts when the process has another parent than at its start. Only below npm, because whoever starts the
 * demo by itself may mean it to outlive the shell.
 */
export function parentGone(env: NodeJS.ProcessEnv): { readonly gone: AbortSignal } & Disposable {
  const gone = new AbortController();
  const parent = process.ppid;
  const look = (): void => {
    if (process.ppid !== parent) gone.abort("parent gone");
  };
  const timer =
    env["npm_lifecycle_event"] === undefined ? undefined : setInterval(look, lookEveryMs);
  timer?.unref();
  return { gone: gone.signal, [Symbol.dispose]: () => clearInterval(timer) };
}
