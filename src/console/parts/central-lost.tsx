// The line above every page while nothing is heard of central: that it does not answer, and since when what stands below may be old.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ApiSession } from "../../wire/customer/session.ts";
import { lastAnsweredMs, notAnswering, notReached } from "../api.ts";
import { useAsked } from "../asked.ts";
import { useIsLive, useLost } from "../live.ts";
import type { Lost } from "../topics.ts";
import { Time } from "./pieces.tsx";

/** A stream that is cut for a moment comes again by itself. */
const toldAfterMs = 5_000;
const probeMs = 20_000;

export function CentralLost(): JSX.Element {
  const isLive = useIsLive();
  const lost = useLost();
  const [isLong, setLong] = useState(false);
  useEffect(() => {
    setLong(false);
    if (isLive) return undefined;
    const timer = setTimeout(() => setLong(true), toldAfterMs);
    return () => clearTimeout(timer);
  }, [isLive]);
  // What is there from the beginning is read aloud when its text comes.
  return <div role="status">{isLong && <Line lost={lost ?? neverHeard} />}</div>;
}

/** Since the page came there was no stream. */
const neverHeard: Lost = { sinceMs: performance.timeOrigin, isSilent: true };

function Line({ lost: { sinceMs, isSilent } }: { readonly lost: Lost }): JSX.Element {
  // A proxy may cut streams alone: then central answers all the same.
  const { failure, isAsking } = useAsked<ApiSession>("/session/", { everyMs: probeMs });
  const [why, setWhy] = useState<string | undefined>(isSilent ? notAnswering : notReached);
  useEffect(() => {
    if (!isAsking) setWhy(failure?.status === 0 ? failure.message : undefined);
  }, [failure, isAsking]);
  if (why === undefined)
    return (
      <p class="note warn">
        Central answers, but has told no changes since <Time at={sinceMs / 1_000} />: what stands
        here may be a minute old.
      </p>
    );
  return (
    <p class="note bad">
      {why.replace(/^c/, "C")}. Nothing was heard since{" "}
      <Time at={Math.max(sinceMs, lastAnsweredMs()) / 1_000} />: what stands here may be old. The
      page tries again by itself.
    </p>
  );
}
