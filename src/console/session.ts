// Who is signed in, for every page that shows or hides what a role may do. Central decides; hiding only spares a refusal.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { ApiSession } from "../wire/customer/session.ts";
import { mayAct, type Role } from "../core/roles.ts";

export const SessionContext = createContext<ApiSession | undefined>(undefined);

export function useSession(): ApiSession {
  const session = useContext(SessionContext);
  if (session === undefined) throw new TypeError("a page was shown to nobody");
  return session;
}

/** Whether the session may do what needs this role. */
export function useMay(role: Role): boolean {
  return mayAct(useSession().role, role);
}

/** Whether the session may do what needs this role and concerns all of the customer: a token for some domains may not. */
export function useMayForAll(role: Role): boolean {
  const { role: has, domains } = useSession();
  return domains === null && mayAct(has, role);
}
