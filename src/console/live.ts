// What changes at central, as the pages hear it: by the shared worker, or by a stream of the tab's own where a browser has no such workers.

import { useEffect, useState } from "preact/hooks";
import { sessionEnd } from "./api.ts";
import { openLiveStream } from "./live-stream.ts";
import type { ChangeTopic } from "../wire/customer/events.ts";
import type { Lost, Said, Told } from "./topics.ts";

type Listener = (told: Told) => void;
const listeners = new Set<Listener>();
let isLive = false;
let lost: Lost | undefined;

const backListeners = new Set<() => void>();

function hear(told: Told): void {
  if (told.kind === "live") {
    const isBack = told.isLive && lost !== undefined;
    ({ isLive, lost } = told);
    if (isBack) for (const listener of backListeners) listener();
  }
  if (told.kind === "bye") sessionEnd.dispatchEvent(new Event("end"));
  for (const listener of listeners) listener(told);
}

/** Begins to hear what a session may, which the text names. Returns what ends it. */
export function startLive(session: string): () => void {
  const url = document.querySelector<HTMLScriptElement>("script[data-worker]")?.dataset["worker"];
  if (url === undefined || !("SharedWorker" in window)) return openLiveStream(hear);
  const worker = new SharedWorker(workerUrl(url), { name: "accel live" });
  const say = (said: Said): void => worker.port.postMessage(said);
  const leave = (): void => say({ kind: "gone" });
  worker.port.addEventListener("message", ({ data }) => hear(data as Told));
  worker.port.start();
  const come = (): void => say({ kind: "here", session });
  const comeBack = ({ persisted }: PageTransitionEvent): void => {
    if (persisted) come();
  };
  come();
  window.addEventListener("pageshow", comeBack);
  window.addEventListener("pagehide", leave);
  return () => {
    window.removeEventListener("pagehide", leave);
    window.removeEventListener("pageshow", comeBack);
    leave();
    worker.port.close();
  };
}

/** Says to browsers that check it (Trusted Types) that the address is one of ours. */
function workerUrl(url: string): string {
  const { trustedTypes } = window as {
    trustedTypes?: {
      createPolicy: (
        name: string,
        rules: { createScriptURL: (text: string) => string },
      ) => { createScriptURL: (text: string) => string };
    };
  };
  const policy = (policyMade ??= trustedTypes?.createPolicy("worker", {
    createScriptURL: (text) => text,
  }));
  return policy?.createScriptURL(url) ?? url;
}
let policyMade: { createScriptURL: (text: string) => string } | undefined;

/** Calls `heard` when one of the topics changed, of this domain where one is given. */
export function onChange(
  topics: readonly ChangeTopic[],
  domain: string | undefined,
  heard: () => void,
): () => void {
  const listener: Listener = (told) => {
    if (told.kind !== "changed") return;
    if (domain !== undefined && told.domain !== undefined && told.domain !== domain) return;
    if (told.topics.some((topic) => topics.includes(topic))) heard();
  };
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Calls `heard` when changes are told again after they were not: what failed meanwhile may go now. */
export function onBack(heard: () => void): () => void {
  backListeners.add(heard);
  return () => void backListeners.delete(heard);
}

/** Whether changes are being told at this moment, for what is no part of a page. */
export function isLiveNow(): boolean {
  return isLive;
}

/** Whether changes are being told at this moment. */
export function useIsLive(): boolean {
  return useTold(() => isLive);
}

/** Since when central is not heard any more; undefined while it is, and while the first stream is being opened. */
export function useLost(): Lost | undefined {
  return useTold(() => lost);
}

function useTold<T>(read: () => T): T {
  const [value, setValue] = useState(read);
  useEffect(() => {
    const listener: Listener = (told) => {
      if (told.kind === "live") setValue(read);
    };
    listeners.add(listener);
    setValue(read);
    return () => void listeners.delete(listener);
  }, []);
  return value;
}
