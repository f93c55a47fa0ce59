// Who is signed in decides what is shown: the form, or the pages.

import type { JSX } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { ApiSession } from "../wire/customer/session.ts";
import { ask, Refusal, sessionEnd } from "./api.ts";
import { forgetDrafts } from "./drafts.ts";
import { startLive } from "./live.ts";
import { Shell } from "./shell.tsx";
import { SignIn } from "./pages/sign-in.tsx";
import { Button, Note } from "./parts/pieces.tsx";
import { SessionContext } from "./session.ts";

/** Nobody has, or central is away: the form stays. */
const ignore = (): void => {};

type State =
  | { readonly kind: "looking" }
  | { readonly kind: "out"; readonly why?: string }
  | { readonly kind: "in"; readonly session: ApiSession }
  | { readonly kind: "unreachable"; readonly why: string };

export function App(): JSX.Element {
  const [state, setState] = useState<State>({ kind: "looking" });
  const look = useCallback(() => {
    ask<ApiSession>("/session/").then(
      (session) => setState({ kind: "in", session }),
      (error: unknown) => {
        if (error instanceof Refusal && error.status === 401) setState({ kind: "out" });
        else
          setState({
            kind: "unreachable",
            why: error instanceof Error ? error.message : String(error),
          });
      },
    );
  }, []);
  useEffect(look, [look]);
  useEffect(() => {
    const end = (): void =>
      setState((before) =>
        before.kind === "in"
          ? { kind: "out", why: "The session is over: it was ended, revoked, or its time was up." }
          : before,
      );
    sessionEnd.addEventListener("end", end);
    return () => sessionEnd.removeEventListener("end", end);
  }, []);
  const isOut = state.kind === "out";
  const wasOut = useRef(false);
  if (isOut) wasOut.current = true;
  useEffect(() => {
    if (!isOut) return undefined;
    forgetDrafts();
    // Somebody may have signed in by another tab meanwhile.
    const lookAgain = (): void => {
      if (document.visibilityState === "visible")
        ask<ApiSession>("/session/").then((session) => setState({ kind: "in", session }), ignore);
    };
    document.addEventListener("visibilitychange", lookAgain);
    return () => document.removeEventListener("visibilitychange", lookAgain);
  }, [isOut]);
  const session = state.kind === "in" ? JSON.stringify(state.session) : undefined;
  useEffect(() => (session === undefined ? undefined : startLive(session)), [session]);

  switch (state.kind) {
    case "looking":
      return <p class="sign-in quiet">Loading …</p>;
    case "unreachable":
      return (
        <main class="sign-in">
          <h1>Not now</h1>
          <Note tone="bad">{state.why}</Note>
          <Button kind="main" onClick={look}>
            Try again
          </Button>
        </main>
      );
    case "out":
      return <SignIn why={state.why} onDone={look} />;
    case "in":
      return (
        <SessionContext.Provider value={state.session}>
          <Shell isNew={wasOut.current} onOut={() => setState({ kind: "out" })} />
        </SessionContext.Provider>
      );
    default:
      return state satisfies never;
  }
}
