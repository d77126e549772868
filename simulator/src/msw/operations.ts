/** Made by scripts/make-operations.ts from the relay's OpenAPI document. */
import type { Operation } from "./operation.ts";

export const OPERATIONS: readonly Operation[] = [
  {
    id: "getHealth",
    method: "get",
    path: "/health",
    credentials: [],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: null,
    status: 200,
    answer: {
      status: "ok",
    },
  },
  {
    id: "getHealthLive",
    method: "get",
    path: "/health/live",
    credentials: [],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: null,
    status: 200,
    answer: {
      status: "ok",
    },
  },
  {
    id: "getHealthReady",
    method: "get",
    path: "/health/ready",
    credentials: [],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: null,
    status: 200,
    answer: {
      status: "ok",
    },
  },
  {
    id: "getAuthConfig",
    method: "get",
    path: "/api/v1/auth/config",
    credentials: [],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: null,
    status: 200,
    answer: {
      totp: "required",
      registration: true,
      session: {
        ttl: 86400,
        max_requests: 10000,
      },
      lockout: {
        failures: 5,
        window: 300,
        duration: 600,
      },
      packet_versions: ["1", "2"],
      version: "0.1.0",
    },
  },
  {
    id: "postAuthLogin",
    method: "post",
    path: "/api/v1/auth/login",
    credentials: [],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: {
      required: true,
      schema: {
        type: "object",
        required: ["username", "password"],
        properties: {
          username: {
            type: "string",
            maxLength: 256,
          },
          password: {
            type: "string",
            maxLength: 256,
          },
          totp_code: {
            type: "string",
            maxLength: 32,
          },
        },
      },
    },
    status: 200,
    answer: {
      access_token: "login_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf3q5R22",
      token_type: "Bearer",
      expires_in: 3600,
      user: {
        id: "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
        username: "ada",
        role: "admin",
        totp_enabled: true,
        created_at: "2026-11-21T09:41:07.250Z",
        api_token: "acct_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf3Bz7ex",
      },
    },
  },
  {
    id: "postAuthLogout",
    method: "post",
    path: "/api/v1/auth/logout",
    credentials: ["login"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: null,
    status: 204,
    answer: null,
  },
  {
    id: "postAuthSession",
    method: "post",
    path: "/api/v1/auth/session",
    credentials: ["account", "login"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: null,
    status: 200,
    answer: {
      session_token: "sess_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf1eADN2",
      expires_at: "2026-11-21T09:41:07.250Z",
      expires_in: 86400,
      max_requests: 10000,
    },
  },
  {
    id: "postAuthTokenRotate",
    method: "post",
    path: "/api/v1/auth/token/rotate",
    credentials: ["account", "login"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: null,
    status: 200,
    answer: {
      api_token: "acct_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf3Bz7ex",
      rotated_at: "2026-11-21T09:41:07.250Z",
    },
  },
  {
    id: "postAuthTotpEnroll",
    method: "post",
    path: "/api/v1/auth/totp/enroll",
    credentials: ["login"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: {
      required: false,
      schema: {
        anyOf: [
          {
            type: "object",
            properties: {
              current_password: {
                type: "string",
                maxLength: 256,
              },
              totp_code: {
                type: "string",
                maxLength: 32,
              },
            },
          },
          {
            type: "null",
          },
        ],
      },
    },
    status: 200,
    answer: {
      otpauth_uri:
        "otpauth://totp/blindrelay:ada?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=blindrelay",
      secret: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ",
    },
  },
  {
    id: "postAuthTotpConfirm",
    method: "post",
    path: "/api/v1/auth/totp/confirm",
    credentials: ["login"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: {
      required: true,
      schema: {
        type: "object",
        required: ["totp_code"],
        properties: {
          totp_code: {
            type: "string",
            maxLength: 32,
          },
        },
      },
    },
    status: 200,
    answer: {
      totp_enabled: true,
      recovery_codes: ["mz3k7-q4tdn"],
    },
  },
  {
    id: "getAccount",
    method: "get",
    path: "/api/v1/account",
    credentials: ["account", "login", "client_session"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: null,
    status: 200,
    answer: {
      id: "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
      username: "ada",
      role: "admin",
      totp_enabled: true,
      created_at: "2026-11-21T09:41:07.250Z",
    },
  },
  {
    id: "patchAccount",
    method: "patch",
    path: "/api/v1/account",
    credentials: ["account", "login"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: {
      required: true,
      schema: {
        type: "object",
        required: ["current_password"],
        properties: {
          current_password: {
            type: "string",
            maxLength: 256,
          },
          totp_code: {
            type: "string",
            maxLength: 32,
          },
          password: {
            type: "string",
            minLength: 8,
            maxLength: 256,
          },
          totp_enabled: {
            type: "boolean",
            const: false,
          },
        },
      },
    },
    status: 200,
    answer: {
      id: "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
      username: "ada",
      role: "admin",
      totp_enabled: true,
      created_at: "2026-11-21T09:41:07.250Z",
    },
  },
  {
    id: "postAgents",
    method: "post",
    path: "/api/v1/agents",
    credentials: ["account", "login"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: {
      required: true,
      schema: {
        type: "object",
        required: ["name"],
        properties: {
          name: {
            type: "string",
            minLength: 1,
            maxLength: 128,
            pattern: "^[^\\u0000-\\u001f\\u007f]*$",
          },
          agent_id: {
            type: "string",
            pattern: "^[A-Za-z0-9_-]{1,64}$",
          },
          metadata: {
            type: "object",
            additionalProperties: {},
          },
        },
      },
    },
    status: 201,
    answer: {
      agent_id: "pump-7",
      name: "Pump in the cellar",
      online: true,
      last_seen: "2026-11-21T09:41:07.250Z",
      runtime: "espruino 2v25 ESP32",
      firmware_version: "1.4.0",
      created_at: "2026-11-21T09:41:07.250Z",
      metadata: {
        site: "cellar",
      },
      api_token: "agt_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf3c6lNx",
    },
  },
  {
    id: "getAgents",
    method: "get",
    path: "/api/v1/agents",
    credentials: ["account", "login", "client_session"],
    query: {
      type: "object",
      required: [],
      properties: {
        limit: {
          type: "integer",
          minimum: 1,
          maximum: 200,
        },
        cursor: {
          type: "string",
          maxLength: 256,
        },
        online: {
          type: "boolean",
        },
        name: {
          type: "string",
          minLength: 1,
          maxLength: 128,
          pattern: "^[^\\u0000-\\u001f\\u007f]*$",
        },
        runtime: {
          type: "string",
          minLength: 1,
          maxLength: 128,
          pattern: "^[^\\u0000-\\u001f\\u007f]*$",
        },
        firmware_version: {
          type: "string",
          minLength: 1,
          maxLength: 128,
          pattern: "^[^\\u0000-\\u001f\\u007f]*$",
        },
      },
    },
    body: null,
    status: 200,
    answer: {
      items: [
        {
          agent_id: "pump-7",
          name: "Pump in the cellar",
          online: true,
          last_seen: "2026-11-21T09:41:07.250Z",
          runtime: "espruino 2v25 ESP32",
          firmware_version: "1.4.0",
          created_at: "2026-11-21T09:41:07.250Z",
          metadata: {
            site: "cellar",
          },
        },
      ],
      next_cursor: "MTc5NTI1NDA2NzI1MC9wdW1wLTc",
    },
  },
  {
    id: "getAgentsByAgentId",
    method: "get",
    path: "/api/v1/agents/:agent_id",
    credentials: ["account", "login", "client_session"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: null,
    status: 200,
    answer: {
      agent_id: "pump-7",
      name: "Pump in the cellar",
      online: true,
      last_seen: "2026-11-21T09:41:07.250Z",
      runtime: "espruino 2v25 ESP32",
      firmware_version: "1.4.0",
      created_at: "2026-11-21T09:41:07.250Z",
      metadata: {
        site: "cellar",
      },
    },
  },
  {
    id: "patchAgentsByAgentId",
    method: "patch",
    path: "/api/v1/agents/:agent_id",
    credentials: ["account", "login"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: {
      required: true,
      schema: {
        type: "object",
        properties: {
          name: {
            type: "string",
            minLength: 1,
            maxLength: 128,
            pattern: "^[^\\u0000-\\u001f\\u007f]*$",
          },
          metadata: {
            type: "object",
            additionalProperties: {},
          },
        },
      },
    },
    status: 200,
    answer: {
      agent_id: "pump-7",
      name: "Pump in the cellar",
      online: true,
      last_seen: "2026-11-21T09:41:07.250Z",
      runtime: "espruino 2v25 ESP32",
      firmware_version: "1.4.0",
      created_at: "2026-11-21T09:41:07.250Z",
      metadata: {
        site: "cellar",
      },
    },
  },
  {
    id: "deleteAgentsByAgentId",
    method: "delete",
    path: "/api/v1/agents/:agent_id",
    credentials: ["account", "login"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: null,
    status: 204,
    answer: null,
  },
  {
    id: "postAgentsByAgentIdRotateToken",
    method: "post",
    path: "/api/v1/agents/:agent_id/rotate-token",
    credentials: ["account", "login"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: null,
    status: 200,
    answer: {
      agent_id: "pump-7",
      api_token: "agt_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf3c6lNx",
      rotated_at: "2026-11-21T09:41:07.250Z",
    },
  },
  {
    id: "getAgentsByAgentIdExport",
    method: "get",
    path: "/api/v1/agents/:agent_id/export",
    credentials: ["account", "login"],
    query: {
      type: "object",
      required: [],
      properties: {
        format: {
          anyOf: [
            {
              type: "string",
              const: "json",
            },
            {
              type: "string",
              const: "espruino",
            },
            {
              type: "string",
              const: "moddable",
            },
            {
              type: "string",
              const: "env",
            },
          ],
        },
      },
    },
    body: null,
    status: 200,
    answer: {
      agent_id: "pump-7",
      api_token: "agt_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf3c6lNx",
      relay_url: "wss://relay.example/wss",
      created_at: "2026-11-21T09:41:07.250Z",
    },
  },
  {
    id: "postReleases",
    method: "post",
    path: "/api/v1/releases",
    credentials: ["account", "login"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: {
      required: true,
      schema: {
        type: "object",
        required: ["runtime", "channel", "version"],
        properties: {
          runtime: {
            type: "string",
            minLength: 1,
            maxLength: 32,
            pattern: "^[a-z0-9][a-z0-9._-]*$",
          },
          channel: {
            type: "string",
            minLength: 1,
            maxLength: 32,
            pattern: "^[a-z0-9][a-z0-9._-]*$",
          },
          version: {
            type: "string",
            maxLength: 64,
            pattern:
              "^(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)(-(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(\\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?$",
          },
          notes: {
            type: "string",
            maxLength: 8192,
          },
        },
      },
    },
    status: 201,
    answer: {
      id: "0d9c0c3e-5f5c-4a6b-9a2f-0f6f0a6d3c11",
      runtime: "espruino",
      channel: "stable",
      version: "1.4.0",
      status: "draft",
      notes: "Closes the valve while the relay is unreachable.",
      size: 48211,
      sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
      signature:
        "wQ1rE0Y3F5pGkH8yQ2n0bV9sJ4tLxU6cZ7aMdBfKqWhTgPjRvXnSyEoIu2C1D3G5H7J9K0L2M4N6P8Q1R3S5Tw",
      key_id: "1f3870be274f6c49",
      rollout: {
        percent: 10,
        paused: true,
        offered: 1,
        confirmed: 1,
      },
      created_at: "2026-11-21T09:41:07.250Z",
      published_at: "2026-11-21T09:41:07.250Z",
    },
  },
  {
    id: "getReleases",
    method: "get",
    path: "/api/v1/releases",
    credentials: ["account", "login", "client_session"],
    query: {
      type: "object",
      required: [],
      properties: {
        limit: {
          type: "integer",
          minimum: 1,
          maximum: 200,
        },
        cursor: {
          type: "string",
          maxLength: 256,
        },
        runtime: {
          type: "string",
          minLength: 1,
          maxLength: 32,
          pattern: "^[a-z0-9][a-z0-9._-]*$",
        },
        channel: {
          type: "string",
          minLength: 1,
          maxLength: 32,
          pattern: "^[a-z0-9][a-z0-9._-]*$",
        },
        status: {
          anyOf: [
            {
              type: "string",
              const: "draft",
            },
            {
              type: "string",
              const: "published",
            },
            {
              type: "string",
              const: "yanked",
            },
          ],
        },
      },
    },
    body: null,
    status: 200,
    answer: {
      items: [
        {
          id: "0d9c0c3e-5f5c-4a6b-9a2f-0f6f0a6d3c11",
          runtime: "espruino",
          channel: "stable",
          version: "1.4.0",
          status: "draft",
          notes: "Closes the valve while the relay is unreachable.",
          size: 48211,
          sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
          signature:
            "wQ1rE0Y3F5pGkH8yQ2n0bV9sJ4tLxU6cZ7aMdBfKqWhTgPjRvXnSyEoIu2C1D3G5H7J9K0L2M4N6P8Q1R3S5Tw",
          key_id: "1f3870be274f6c49",
          rollout: {
            percent: 10,
            paused: true,
            offered: 1,
            confirmed: 1,
          },
          created_at: "2026-11-21T09:41:07.250Z",
          published_at: "2026-11-21T09:41:07.250Z",
        },
      ],
      next_cursor: "MTc5NTI1NDA2NzI1MC9wdW1wLTc",
    },
  },
  {
    id: "getReleasesById",
    method: "get",
    path: "/api/v1/releases/:id",
    credentials: ["account", "login", "client_session"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: null,
    status: 200,
    answer: {
      id: "0d9c0c3e-5f5c-4a6b-9a2f-0f6f0a6d3c11",
      runtime: "espruino",
      channel: "stable",
      version: "1.4.0",
      status: "draft",
      notes: "Closes the valve while the relay is unreachable.",
      size: 48211,
      sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
      signature:
        "wQ1rE0Y3F5pGkH8yQ2n0bV9sJ4tLxU6cZ7aMdBfKqWhTgPjRvXnSyEoIu2C1D3G5H7J9K0L2M4N6P8Q1R3S5Tw",
      key_id: "1f3870be274f6c49",
      rollout: {
        percent: 10,
        paused: true,
        offered: 1,
        confirmed: 1,
      },
      created_at: "2026-11-21T09:41:07.250Z",
      published_at: "2026-11-21T09:41:07.250Z",
    },
  },
  {
    id: "patchReleasesById",
    method: "patch",
    path: "/api/v1/releases/:id",
    credentials: ["account", "login"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: {
      required: true,
      schema: {
        type: "object",
        properties: {
          status: {
            anyOf: [
              {
                type: "string",
                const: "published",
              },
              {
                type: "string",
                const: "yanked",
              },
            ],
          },
          notes: {
            type: "string",
            maxLength: 8192,
          },
          rollout: {
            type: "object",
            properties: {
              percent: {
                type: "integer",
                minimum: 0,
                maximum: 100,
              },
              paused: {
                type: "boolean",
              },
            },
          },
        },
      },
    },
    status: 200,
    answer: {
      id: "0d9c0c3e-5f5c-4a6b-9a2f-0f6f0a6d3c11",
      runtime: "espruino",
      channel: "stable",
      version: "1.4.0",
      status: "draft",
      notes: "Closes the valve while the relay is unreachable.",
      size: 48211,
      sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
      signature:
        "wQ1rE0Y3F5pGkH8yQ2n0bV9sJ4tLxU6cZ7aMdBfKqWhTgPjRvXnSyEoIu2C1D3G5H7J9K0L2M4N6P8Q1R3S5Tw",
      key_id: "1f3870be274f6c49",
      rollout: {
        percent: 10,
        paused: true,
        offered: 1,
        confirmed: 1,
      },
      created_at: "2026-11-21T09:41:07.250Z",
      published_at: "2026-11-21T09:41:07.250Z",
    },
  },
  {
    id: "deleteReleasesById",
    method: "delete",
    path: "/api/v1/releases/:id",
    credentials: ["account", "login"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: null,
    status: 204,
    answer: null,
  },
  {
    id: "getReleasesCheck",
    method: "get",
    path: "/api/v1/releases/check",
    credentials: ["account", "login", "client_session", "agent", "agent_session"],
    query: {
      type: "object",
      required: ["channel", "version"],
      properties: {
        channel: {
          type: "string",
          minLength: 1,
          maxLength: 32,
          pattern: "^[a-z0-9][a-z0-9._-]*$",
        },
        version: {
          type: "string",
          minLength: 1,
          maxLength: 64,
        },
        runtime: {
          type: "string",
          minLength: 1,
          maxLength: 32,
          pattern: "^[a-z0-9][a-z0-9._-]*$",
        },
      },
    },
    body: null,
    status: 200,
    answer: {
      update_available: true,
      channel: "stable",
      current: "1.3.2",
      latest: {
        version: "1.4.0",
        runtime: "espruino",
        url: "https://relay.example/api/v1/releases/0d9c0c3e/artifact?ticket=1795254067-x",
        sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        size: 48211,
        signature:
          "wQ1rE0Y3F5pGkH8yQ2n0bV9sJ4tLxU6cZ7aMdBfKqWhTgPjRvXnSyEoIu2C1D3G5H7J9K0L2M4N6P8Q1R3S5Tw",
        key_id: "1f3870be274f6c49",
        notes: "Closes the valve while the relay is unreachable.",
        published_at: "2026-11-21T09:41:07.250Z",
      },
    },
  },
  {
    id: "getAdminStats",
    method: "get",
    path: "/api/v1/admin/stats",
    credentials: ["account", "login"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: null,
    status: 200,
    answer: {
      uptime_s: 12,
      versions: {
        relay: "0.1.0",
        node: "26.10.0",
      },
      users: 12,
      agents: {
        total: 12,
        online: 12,
      },
      connections: {
        client: 12,
        agent: 12,
        firmware: 12,
        waiting: 12,
        closing: 12,
      },
      messages: {
        forwarded: 12,
        dropped: {
          AGENT_OFFLINE: 3,
        },
      },
      auth_failures: 4,
      lockouts: 12,
      queue_bytes: 0,
      event_loop_delay: {
        mean_ms: 0.8,
        p99_ms: 0.8,
        max_ms: 0.8,
      },
    },
  },
  {
    id: "getAdminUsers",
    method: "get",
    path: "/api/v1/admin/users",
    credentials: ["account", "login"],
    query: {
      type: "object",
      required: [],
      properties: {
        limit: {
          type: "integer",
          minimum: 1,
          maximum: 200,
        },
        cursor: {
          type: "string",
          maxLength: 256,
        },
      },
    },
    body: null,
    status: 200,
    answer: {
      items: [
        {
          id: "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
          username: "ada",
          role: "admin",
          totp_enabled: true,
          created_at: "2026-11-21T09:41:07.250Z",
          disabled: true,
        },
      ],
      next_cursor: "MTc5NTI1NDA2NzI1MC9wdW1wLTc",
    },
  },
  {
    id: "postAdminUsers",
    method: "post",
    path: "/api/v1/admin/users",
    credentials: ["account", "login"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: {
      required: true,
      schema: {
        type: "object",
        required: ["username", "password", "role"],
        properties: {
          username: {
            type: "string",
            pattern: "^[A-Za-z0-9._@-]{1,64}$",
          },
          password: {
            type: "string",
            minLength: 8,
            maxLength: 256,
          },
          role: {
            anyOf: [
              {
                type: "string",
                const: "admin",
              },
              {
                type: "string",
                const: "user",
              },
            ],
          },
        },
      },
    },
    status: 201,
    answer: {
      id: "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
      username: "ada",
      role: "admin",
      totp_enabled: true,
      created_at: "2026-11-21T09:41:07.250Z",
      disabled: true,
    },
  },
  {
    id: "getAdminUsersById",
    method: "get",
    path: "/api/v1/admin/users/:id",
    credentials: ["account", "login"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: null,
    status: 200,
    answer: {
      id: "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
      username: "ada",
      role: "admin",
      totp_enabled: true,
      created_at: "2026-11-21T09:41:07.250Z",
      disabled: true,
    },
  },
  {
    id: "patchAdminUsersById",
    method: "patch",
    path: "/api/v1/admin/users/:id",
    credentials: ["account", "login"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: {
      required: true,
      schema: {
        type: "object",
        properties: {
          role: {
            anyOf: [
              {
                type: "string",
                const: "admin",
              },
              {
                type: "string",
                const: "user",
              },
            ],
          },
          disabled: {
            type: "boolean",
          },
          password: {
            type: "string",
            minLength: 8,
            maxLength: 256,
          },
          totp_enabled: {
            type: "boolean",
            const: false,
          },
        },
      },
    },
    status: 200,
    answer: {
      id: "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
      username: "ada",
      role: "admin",
      totp_enabled: true,
      created_at: "2026-11-21T09:41:07.250Z",
      disabled: true,
    },
  },
  {
    id: "deleteAdminUsersById",
    method: "delete",
    path: "/api/v1/admin/users/:id",
    credentials: ["account", "login"],
    query: {
      type: "object",
      required: [],
      properties: {},
    },
    body: null,
    status: 204,
    answer: null,
  },
  {
    id: "getAdminAudit",
    method: "get",
    path: "/api/v1/admin/audit",
    credentials: ["account", "login"],
    query: {
      type: "object",
      required: [],
      properties: {
        limit: {
          type: "integer",
          minimum: 1,
          maximum: 200,
        },
        cursor: {
          type: "string",
          maxLength: 256,
        },
        action: {
          anyOf: [
            {
              type: "string",
              const: "user.create",
            },
            {
              type: "string",
              const: "user.role",
            },
            {
              type: "string",
              const: "user.disable",
            },
            {
              type: "string",
              const: "user.enable",
            },
            {
              type: "string",
              const: "user.password",
            },
            {
              type: "string",
              const: "user.totp_enable",
            },
            {
              type: "string",
              const: "user.totp_disable",
            },
            {
              type: "string",
              const: "user.rotate_token",
            },
            {
              type: "string",
              const: "user.delete",
            },
            {
              type: "string",
              const: "user.unlock",
            },
            {
              type: "string",
              const: "agent.create",
            },
            {
              type: "string",
              const: "agent.rotate_token",
            },
            {
              type: "string",
              const: "agent.export",
            },
            {
              type: "string",
              const: "agent.delete",
            },
            {
              type: "string",
              const: "release.create",
            },
            {
              type: "string",
              const: "release.upload",
            },
            {
              type: "string",
              const: "release.publish",
            },
            {
              type: "string",
              const: "release.rollout",
            },
            {
              type: "string",
              const: "release.yank",
            },
            {
              type: "string",
              const: "release.delete",
            },
            {
              type: "string",
              const: "relay.rekey",
            },
          ],
        },
        actor_id: {
          type: "string",
          pattern: "^[A-Za-z0-9-]{1,64}$",
        },
        subject: {
          type: "string",
          pattern: "^[A-Za-z0-9_-]{1,64}$",
        },
      },
    },
    body: null,
    status: 200,
    answer: {
      items: [
        {
          id: "a7c4b6f2-0d0e-4c55-8f0b-5d2b7c1e9a10",
          at: "2026-11-21T09:41:07.250Z",
          actor: {
            id: "text",
            username: "ada",
          },
          action: "user.create",
          subject: "pump-7",
          detail: {
            name: "Pump",
          },
        },
      ],
      next_cursor: "MTc5NTI1NDA2NzI1MC9wdW1wLTc",
    },
  },
];
