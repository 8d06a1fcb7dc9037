// The plugin interface that the adapter speaks.
#pragma once

#define ORT_PLUGIN_API_VERSION 1
