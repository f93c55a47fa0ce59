// Who may do what: the customer's tokens and sessions, and the user's own profile.

import type { JSX } from "preact";
import { ProfilePanel } from "../parts/profile-panel.tsx";
import { TokensPanel } from "../parts/tokens-panel.tsx";
import { useMayForAll } from "../session.ts";

export function AccessPage(): JSX.Element {
  const isOwner = useMayForAll("owner");
  return (
    <>
      <h1>Access</h1>
      {isOwner && <TokensPanel />}
      <ProfilePanel mayWrite={isOwner} />
    </>
  );
}
