// Calls about tokens, and about sessions of browsers, which are tokens too.

import type { Role } from "../core/roles.ts";
import { sessionShape, type ApiSession } from "../wire/customer/session.ts";
import {
  apiTokenMadeShape,
  apiTokenShape,
  type ApiToken,
  type ApiTokenMade,
} from "../wire/customer/token.ts";
import { arrayOf, nothing, type CallOptions, type ApiCalls } from "./transport.ts";

export type TokenClient = {
  /** Who asks, and what the token may do. */
  session(): Promise<ApiSession>;
  /** Begins a session of a browser, which keeps its cookie; elsewhere the token does without. */
  signIn(options?: CallOptions): Promise<ApiSession>;
  signOut(): Promise<void>;
  /** Makes a token of whoever asks; it is shown this once. */
  createToken(
    asked: {
      readonly name: string;
      readonly role: Role;
      /** Main domains; left out, it is for everything of the customer. */
      readonly domains?: readonly string[];
      readonly lifetimeSeconds?: number;
    },
    options?: CallOptions,
  ): Promise<ApiTokenMade>;
  /** Lists the tokens of all users of the customer that are in force. */
  tokens(): Promise<readonly ApiToken[]>;
  token(id: number): Promise<ApiToken>;
  revokeToken(id: number): Promise<void>;
};

export function tokenClient({ call }: Pick<ApiCalls, "call">): TokenClient {
  return {
    session: async () => (await call("GET", "/session/", sessionShape.decode)).value,
    signIn: async (options) =>
      (await call("POST", "/session/", sessionShape.decode, { ...options })).value,
    signOut: async () => void (await call("DELETE", "/session/", nothing)),
    createToken: async ({ name, role, domains, lifetimeSeconds }, options) => {
      const body = {
        name,
        role,
        ...(domains !== undefined && { domains }),
        ...(lifetimeSeconds !== undefined && { lifetime_seconds: lifetimeSeconds }),
      };
      const { decode } = apiTokenMadeShape;
      return (await call("POST", "/tokens/", decode, { body, ...options })).value;
    },
    tokens: async () => (await call("GET", "/tokens/", arrayOf(apiTokenShape))).value,
    token: async (id) => (await call("GET", `/tokens/${id}/`, apiTokenShape.decode)).value,
    revokeToken: async (id) => void (await call("DELETE", `/tokens/${id}/`, nothing)),
  };
}
