// What a clear would hit: asked while it is typed, and again as long as it stands there, for caches fill.

import { useEffect, useState } from "preact/hooks";
import type { DryRun } from "../wire/customer/clear.ts";
import { at, Refusal, send, refusalFrom } from "./api.ts";
import type { bodyOf } from "./clear-form.ts";

export type DryRunState = {
  readonly isAsking: boolean;
  readonly value: DryRun | undefined;
  readonly failure: Refusal | undefined;
};

const nothing: DryRunState = { isAsking: false, value: undefined, failure: undefined };
/** Asks once the typing has paused. */
const pauseMs = 350;
/** Caches fill. Each dry run starts a process on every host, so it is not asked often, and not for a tab that nobody sees. */
const againMs = 30_000;

export function useDryRun(host: string, body: ReturnType<typeof bodyOf>): DryRunState {
  const [state, setState] = useState(nothing);
  const asked = body === undefined ? undefined : JSON.stringify({ ...body, dry_run: true });
  useEffect(() => {
    if (asked === undefined) {
      setState(nothing);
      return undefined;
    }
    const controller = new AbortController();
    const { signal } = controller;
    let timer: ReturnType<typeof setTimeout>;
    const look = async (): Promise<void> => {
      if (document.visibilityState !== "visible") {
        timer = setTimeout(() => void look(), againMs);
        return;
      }
      const path = at`/clear-accelerator-cache/${host}/`;
      try {
        const value = await send<DryRun>("POST", path, JSON.parse(asked), signal);
        if (!signal.aborted) setState({ isAsking: false, value, failure: undefined });
      } catch (error) {
        if (signal.aborted) return;
        const failure = refusalFrom(error);
        setState({ isAsking: false, value: undefined, failure });
      }
      if (!signal.aborted) timer = setTimeout(() => void look(), againMs);
    };
    setState((before) => ({ ...before, isAsking: true }));
    timer = setTimeout(() => void look(), pauseMs);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [asked, host]);
  return state;
}
