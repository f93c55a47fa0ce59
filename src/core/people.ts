// Users of customers as operators see them.

export type Person = {
  readonly id: number;
  readonly customer_id: number;
  readonly username: string;
  readonly email: string;
  readonly first_name: string;
  readonly last_name: string;
  readonly date_joined: string;
  readonly may_publish: boolean;
  readonly may_read_logs: boolean;
  readonly has_password: boolean;
  /** The number of tokens in force. */
  readonly tokens: number;
  /** ISO 8601; null if the user is not locked. */
  readonly when_locked: string | null;
};

export type NewPerson = {
  readonly customerId: number;
  readonly username: string;
  readonly email: string;
  readonly firstName: string;
  readonly lastName: string;
  readonly passwordHash: string | null;
};

export type Permission = "publish" | "read-logs";
