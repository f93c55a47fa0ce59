// A question to the API that a page shows: asked when the page comes, again when central tells of a change, and now and then all the same: every minute, or every five
// where changes are being told.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ask, Refusal, refusalFrom } from "./api.ts";
import { isLiveNow, onBack, onChange } from "./live.ts";
import type { ChangeTopic } from "../wire/customer/events.ts";

export type Asked<T> = {
  /** The newest answer; it stays while a further question is under way, and where that fails. */
  readonly value: T | undefined;
  /** When the value came, in milliseconds since the epoch. */
  readonly answeredMs: number | undefined;
  readonly failure: Refusal | undefined;
  readonly isAsking: boolean;
  /** Asks again now. */
  readonly again: () => void;
};

export type AskedOptions = {
  readonly topics?: readonly ChangeTopic[];
  /** Changes of other domains are none of ours. */
  readonly domain?: string;
  /** How often it is asked again even if nothing was told. */
  readonly everyMs?: number;
  /** Whether the answer about one path stays until that about the next is there. */
  readonly keepsOld?: boolean;
};

type AskedState<T> = {
  readonly path: string | undefined;
  readonly value?: T;
  readonly answeredMs?: number;
  readonly failure?: Refusal;
};

export const everyDefaultMs = 60_000;
/** Central tells of each change: asking nevertheless is for what a fault in that might have lost. */
const toldEveryMs = 300_000;

/** Asks for a path; undefined asks nothing. */
export function useAsked<T>(
  path: string | undefined,
  { topics = [], domain, everyMs = everyDefaultMs, keepsOld = false }: AskedOptions = {},
): Asked<T> {
  const [state, setState] = useState<AskedState<T>>({ path });
  const [isAsking, setIsAsking] = useState(path !== undefined);
  const running = useRef<AbortController>(undefined);
  const isUnderWay = useRef(false);
  const askedMs = useRef(0);
  const heard = topics.join(" ");
  const again = useCallback(() => {
    running.current?.abort();
    isUnderWay.current = path !== undefined;
    if (path === undefined) return;
    const controller = new AbortController();
    running.current = controller;
    askedMs.current = performance.now();
    setIsAsking(true);
    ask<T>(path, controller.signal)
      .then(
        (value) => setState({ path, value, answeredMs: Date.now() }),
        (error: unknown) => {
          if (controller.signal.aborted) return;
          const failure = refusalFrom(error);
          setState((before) =>
            before.path === path || keepsOld ? { ...before, path, failure } : { path, failure },
          );
        },
      )
      .finally(() => {
        if (controller.signal.aborted) return;
        isUnderWay.current = false;
        setIsAsking(false);
      });
  }, [path, keepsOld]);

  useEffect(() => {
    again();
    const timer = setInterval(() => {
      // Whoever asks more often waits for what central does not tell.
      const isTold = heard !== "" && everyMs === everyDefaultMs && isLiveNow();
      const isEarly = isTold && performance.now() - askedMs.current < toldEveryMs - everyMs / 2;
      // A question that waits for a central that hangs fails by its own deadline, and is told then.
      if (document.visibilityState === "visible" && !isEarly && !isUnderWay.current) again();
    }, everyMs);
    const stop = onBack(again);
    return () => {
      stop();
      clearInterval(timer);
      running.current?.abort();
    };
  }, [again, everyMs, heard]);
  useEffect(
    () => onChange(heard.split(" ") as readonly ChangeTopic[], domain, again),
    [heard, domain, again],
  );

  const isOfThis = state.path === path;
  return {
    value: isOfThis || keepsOld ? state.value : undefined,
    answeredMs: isOfThis || keepsOld ? state.answeredMs : undefined,
    failure: isOfThis ? state.failure : undefined,
    isAsking: isAsking || !isOfThis,
    again,
  };
}
