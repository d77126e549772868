#include "xsmc.h"
#include "xsHost.h"

void xs_blindrelay_print(xsMachine *the)
{
	modLog_transmit(xsmcToString(xsArg(0)));
}
