// What a clear would hit, asked while it is typed.

import { useEffect, useState } from "preact/hooks";
import type { DryRun } from "../wire/customer/clear.ts";
import { at, Refusal, send } from "./api.ts";
import type { bodyOf } from "./clear-form.ts";

export type DryRunState = {
  readonly isAsking: boolean;
  readonly value: DryRun | undefined;
  readonly failure: Refusal | undefined;
};

const pauseMs = 350;

/** Asks what a clear would hit, once the typing has paused. */
export function useDryRun(host: string, body: ReturnType<typeof bodyOf>): DryRunState {
  const [state, setState] = useState<DryRunState>({
    isAsking: false,
    value: undefined,
    failure: undefined,
  });
  const asked = body === undefined ? undefined : JSON.stringify({ ...body, dry_run: true });
  useEffect(() => {
    if (asked === undefined) {
      setState({ isAsking: false, value: undefined, failure: undefined });
      return undefined;
    }
    const controller = new AbortController();
    setState((before) => ({ ...before, isAsking: true }));
    const timer = setTimeout(() => {
      send<DryRun>(
        "POST",
        at`/clear-accelerator-cache/${host}/`,
        JSON.parse(asked),
        controller.signal,
      ).then(
        (value) => setState({ isAsking: false, value, failure: undefined }),
        (error: unknown) => {
          if (controller.signal.aborted) return;
          const failure = error instanceof Refusal ? error : new Refusal(0, String(error));
          setState({ isAsking: false, value: undefined, failure });
        },
      );
    }, pauseMs);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [asked, host]);
  return state;
}
