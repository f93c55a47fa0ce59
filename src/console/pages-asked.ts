// A list that goes on page by page: the first page is kept fresh, further ones are added when somebody asks for them.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { askPage, Refusal, refusalFrom } from "./api.ts";
import { everyDefaultMs, type AskedOptions } from "./asked.ts";
import { onBack, onChange } from "./live.ts";
import type { ChangeTopic } from "../wire/customer/events.ts";

export type PagesAsked<T> = {
  readonly items: readonly T[] | undefined;
  readonly failure: Refusal | undefined;
  /** Adds the next page. Undefined where there is none. */
  readonly more: (() => void) | undefined;
  /** Asks for the first page again now. */
  readonly again: () => void;
};

type Loaded<T> = {
  readonly path: string;
  readonly items?: readonly T[];
  readonly next?: string | undefined;
  readonly failure?: Refusal;
};

export function usePages<T>(
  path: string,
  { topics = [], domain, everyMs = everyDefaultMs }: AskedOptions = {},
): PagesAsked<T> {
  const [state, setState] = useState<Loaded<T>>({ path });
  const load = useCallback(
    (from: string, before: readonly T[], signal?: AbortSignal) => {
      askPage<readonly T[]>(from, signal).then(
        ({ value, next }) => setState({ path, items: [...before, ...value], next }),
        (error: unknown) => {
          if (signal?.aborted === true) return;
          const failure = refusalFrom(error);
          setState((old) => (old.path === path ? { ...old, failure } : { path, failure }));
        },
      );
    },
    [path],
  );
  const heard = topics.join(" ");
  const running = useRef(new AbortController());
  const hasMore = useRef(false);
  const again = useCallback(() => {
    running.current.abort();
    hasMore.current = false;
    running.current = new AbortController();
    load(path, [], running.current.signal);
  }, [path, load]);
  useEffect(() => {
    again();
    const stop = onChange(heard.split(" ") as readonly ChangeTopic[], domain, again);
    const timer = setInterval(() => {
      // Whoever reads further pages keeps them.
      if (document.visibilityState === "visible" && !hasMore.current) again();
    }, everyMs);
    const stopBack = onBack(() => {
      if (!hasMore.current) again();
    });
    return () => {
      clearInterval(timer);
      stop();
      stopBack();
      running.current.abort();
    };
  }, [again, heard, domain, everyMs]);

  const isOfThis = state.path === path;
  const { items, next, failure } = isOfThis
    ? state
    : { items: undefined, next: undefined, failure: undefined };
  return {
    items,
    failure,
    more:
      next === undefined || items === undefined
        ? undefined
        : () => {
            hasMore.current = true;
            load(next, items);
          },
    again,
  };
}
